export {
  Answer,
  callLine,
  type ConversationListener,
  type Prices,
  type ReplyOptions,
  Usage,
} from './conversation/answer.js';
export {
  type QuestionOptions,
  Conversation,
  ConversationBusy,
  type ConversationOptions,
} from './conversation/conversation.js';
export { ConversationFileError, type HistoryEntry, HistoryError } from './conversation/conversation-file.js';
export type { MadeCall } from './model/made-call.js';
export { LanguageModelError, ModelSettingsError } from './model/language-model.js';
export { type ModelSettings, openModel, type Provider, PROVIDERS } from './model/open-model.js';
export { KernelTools, type ToolReply } from './conversation/kernel-tools.js';
