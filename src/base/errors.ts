/** Door of `base`: the errors that drmas raises, and the validation that raises them. */
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
  TrainingError,
  UnattributedCallError,
} from './core/errors.js';
export { parseAt, shown, suggestion } from './core/validation/explain.js';
export { type Issue, issuesText } from './core/validation/issues.js';
export { fitsJsonSchema } from './core/validation/json-schema.js';
export { DEEPEST, nestsTooDeep } from './core/validation/nesting.js';
export { deepFrozen, isObject, isSmall } from './core/validation/objects.js';
export { parseSpec } from './core/validation/parse-spec.js';
export { assertSameShape } from './core/validation/same-shape.js';
