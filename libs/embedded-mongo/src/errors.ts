/** Server error codes the engine and the commands answer with, by MongoDB's own names. */
const codeNames: Readonly<Record<number, string>> = {
  1: 'InternalError',
  2: 'BadValue',
  5: 'GraphContainsCycle',
  6: 'HostUnreachable',
  7: 'HostNotFound',
  8: 'UnknownError',
  9: 'FailedToParse',
  11: 'UserNotFound',
  13: 'Unauthorized',
  14: 'TypeMismatch',
  15: 'Overflow',
  16: 'InvalidLength',
  17: 'ProtocolError',
  18: 'AuthenticationFailed',
  20: 'IllegalOperation',
  22: 'InvalidBSON',
  26: 'NamespaceNotFound',
  27: 'IndexNotFound',
  28: 'PathNotViable',
  40: 'ConflictingUpdateOperators',
  43: 'CursorNotFound',
  47: 'NoMatchingDocument',
  48: 'NamespaceExists',
  50: 'MaxTimeMSExpired',
  52: 'DollarPrefixedFieldName',
  53: 'InvalidIdField',
  54: 'NotSingleValueField',
  56: 'EmptyFieldName',
  59: 'CommandNotFound',
  64: 'WriteConcernFailed',
  66: 'ImmutableField',
  67: 'CannotCreateIndex',
  72: 'InvalidOptions',
  73: 'InvalidNamespace',
  76: 'NoReplicationEnabled',
  85: 'IndexOptionsConflict',
  86: 'IndexKeySpecsConflict',
  89: 'NetworkTimeout',
  91: 'ShutdownInProgress',
  100: 'UnsatisfiableWriteConcern',
  112: 'WriteConflict',
  117: 'ConflictingOperationInProgress',
  121: 'DocumentValidationFailure',
  123: 'NotAReplicaSet',
  125: 'CommandFailed',
  136: 'CappedPositionLost',
  146: 'ExceededMemoryLimit',
  165: 'ViewDepthLimitExceeded',
  166: 'CommandNotSupportedOnView',
  167: 'OptionNotSupportedOnView',
  168: 'InvalidPipelineOperator',
  171: 'CannotIndexParallelArrays',
  175: 'QueryPlanKilled',
  181: 'AmbiguousIndexKeyPattern',
  189: 'PrimarySteppedDown',
  197: 'InvalidIndexSpecificationOption',
  211: 'KeyNotFound',
  225: 'TransactionTooOld',
  237: 'CursorKilled',
  238: 'NotImplemented',
  241: 'ConversionFailure',
  246: 'SnapshotUnavailable',
  251: 'NoSuchTransaction',
  256: 'TransactionCommitted',
  260: 'InvalidResumeToken',
  262: 'ExceededTimeLimit',
  263: 'OperationNotSupportedInTransaction',
  279: 'ClientDisconnect',
  280: 'ChangeStreamFatalError',
  286: 'ChangeStreamHistoryLost',
  291: 'NoQueryExecutionPlans',
  292: 'QueryExceededMemoryLimitNoDiskUseAllowed',
  322: 'APIVersionError',
  323: 'APIStrictError',
  334: 'MechanismUnavailable',
  359: 'CannotConvertIndexToUnique',
  9001: 'SocketException',
  10107: 'NotWritablePrimary',
  10334: 'BSONObjectTooLarge',
  11000: 'DuplicateKey',
  11600: 'InterruptedAtShutdown',
  11601: 'Interrupted',
  11602: 'InterruptedDueToReplStateChange',
  13435: 'NotPrimaryNoSecondaryOk',
  13436: 'NotPrimaryOrSecondary',
  31082: 'SearchNotEnabled',
};

/** A refusal as MongoDB words it: the number drivers branch on, its name, and a text for people. */
export class MongoError extends Error {
  readonly codeName: string;
  /** Labels for the driver's retry rules, such as TransientTransactionError. */
  labels?: string[];

  constructor(
    readonly code: number,
    message: string,
    /** Further reply fields, for example keyPattern and keyValue of a duplicate key. */
    readonly extra?: object,
  ) {
    super(message);
    this.name = 'MongoError';
    this.codeName = codeNames[code] ?? `Location${code}`;
  }
}

export const mongoError = (code: number, message: string, extra?: object): MongoError =>
  new MongoError(code, message, extra);

export const badValue = (message: string): MongoError => new MongoError(2, message);
export const createParseError = (message: string): MongoError => new MongoError(9, message);
export const createIdError = (): MongoError =>
  new MongoError(66, "Performing an update on the path '_id' would modify the immutable field '_id'");
export const typeMismatch = (message: string): MongoError => new MongoError(14, message);
/** Errors: 40415 for a member that a part of a command does not have. */
export function refuseUnknown(part: object, known: readonly string[], name: string): void {
  const unknown = Object.keys(part).find((member) => !known.includes(member));
  if (unknown !== undefined)
    throw new MongoError(40415, `BSON field '${name}.${unknown}' is an unknown field.`);
}
/** Errors: 2 for a value that an option does not have. */
export function requireOneOf(value: unknown, values: readonly unknown[], name: string): void {
  if (!values.includes(value))
    throw badValue(`Enumeration value '${String(value)}' for field '${name}' is not a valid value.`);
}
/** A documented MongoDB feature that this server does not have: said aloud, never guessed at. */
export const notImplemented = (feature: string): MongoError =>
  new MongoError(238, `${feature} is not supported by the embedded server`);
/** Server-side JavaScript never runs here, whatever the operator is called. */
export const scriptRefused = (operator: string): MongoError =>
  new MongoError(31264, `${operator} is refused: server-side JavaScript is disabled`);

/** Errors after which a driver may send a command again to another member. */
export const retryableCodes: ReadonlySet<number> = new Set([
  6, 7, 89, 91, 189, 262, 9001, 10107, 11600, 11602, 13435, 13436,
]);

/** What the search process of Atlas answers to a malformed search. */
export const searchFault = (message: string): MongoError => mongoError(8, message);

/** A search feature that exists, but not here. */
export const searchLack = (feature: string): MongoError => notImplemented(`${feature} of a search`);

/** What a server without search answers. */
export const searchNotEnabled = (stage: string): MongoError =>
  mongoError(31082, `Using ${stage} requires additional configuration`);
