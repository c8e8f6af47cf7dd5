export {
  Answer,
  type AnswerEnd,
  callLine,
  type ConversationListener,
  LIST_PRICES,
  type MadeCall,
  type Price,
  type Prices,
  Usage,
} from './conversation/answer.js';
export type { LoopLimits } from './conversation/answer-loop.js';
export {
  type AskOptions,
  Conversation,
  ConversationBusy,
  type ConversationOptions,
} from './conversation/conversation.js';
export { ConversationFileError, type HistoryEntry, HistoryError } from './conversation/conversation-file.js';
export {
  LanguageModel,
  LanguageModelError,
  type ModelFault,
  ModelSettingsError,
} from './model/language-model.js';
export { type ModelSettings, openModel, type Provider, PROVIDERS } from './model/open-model.js';
export {
  KernelTools,
  type KernelToolsOptions,
  ToolDesk,
  type ToolReply,
  type ToolWatch,
} from './conversation/kernel-tools.js';
