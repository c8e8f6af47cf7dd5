export { Answer, type AnswerEnd, callLine } from './conversation/answer.js';
export type { LoopLimits } from './conversation/answer-loop.js';
export {
  type AskOptions,
  Conversation,
  ConversationBusy,
  type ConversationOptions,
} from './conversation/conversation.js';
export { ConversationFileError } from './conversation/conversation-file.js';
export { type HistoryEntry, HistoryError } from './conversation/history.js';
export type { ConversationListener, MadeCall } from './conversation/listener.js';
export { LIST_PRICES, type Price, type Prices, Usage } from './conversation/usage.js';
export { LanguageModel } from './model/language-model.js';
export { LanguageModelError, type ModelFault, ModelSettingsError } from './model/model-error.js';
export { type ModelSettings, openModel, type Provider, PROVIDERS } from './model/open-model.js';
export { KernelTools, type KernelToolsParts } from './tools/kernel-tools.js';
export { ToolDesk, type ToolReply, type ToolWatch } from './tools/tool-desk.js';
