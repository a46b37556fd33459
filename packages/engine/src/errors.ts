/** The errors that drmas raises, and the validation that raises them. */
export {
  AnswerError,
  ArgumentError,
  BackendError,
  CheckpointError,
  DeviceError,
  DialectError,
  DrmasError,
  EndpointError,
  EpisodeError,
  EpisodeOverError,
  type FilePlace,
  filePlace,
  HubError,
  isGoneForGood,
  LogError,
  messageOf,
  NonFiniteError,
  RecipeError,
  RunError,
  reasonOf,
  StoreError,
  TaskError,
  TokenizerError,
  ToolServerError,
  TrainingError,
  UnattributedCallError,
  WorldError,
  type WorldErrorCode,
} from './base/core/errors.js';
export {
  compactJson,
  copyWithSource,
  exactJson,
  NumberText,
  parseExactly,
  parseWithDigits,
  parseWithSource,
  parseWithSources,
} from './base/core/exact-json.js';
export {
  faultsError,
  issuesText,
  parseAt,
  requireKnownKeys,
  shown,
  suggestion,
} from './base/core/validation/explain.js';
export { fitsJsonSchema, fitsSchema } from './base/core/validation/json-schema.js';
export {
  assertSameShape,
  DEEPEST,
  deepFrozen,
  isObject,
  isSmall,
  jsonObject,
  jsonValue,
  nestsTooDeep,
  ownValue,
} from './base/core/validation/objects.js';
export { parseSpec } from './base/core/validation/parse-spec.js';
export { serverUrl } from './base/core/validation/server-url.js';
