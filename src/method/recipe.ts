/** Door of `method`: recipes: definition, schema, resolution, plug-ins. */
export { type Assignment, assignmentOf } from './recipe/assignment.js';
export { type BackendSpec, serverKeyOf } from './recipe/backend-spec.js';
export {
  defineRecipe,
  type RecipeDefinition,
  type RecipeInput,
} from './recipe/define.js';
export { type FrozenSpec, frozen, frozenSchema } from './recipe/frozen.js';
export { DEFAULT_VALUE_CLIP } from './recipe/learning.js';
export { keyVariablesOf, type Lists, typeOf } from './recipe/lists.js';
export { parseOverride } from './recipe/overrides.js';
export type { Plugin } from './recipe/plugins/plugins.js';
export { lossPath, lossSettings } from './recipe/policy-losses.js';
export {
  agentAdapterSettings,
  agentProfiles,
  backendOf,
  backendOfModel,
  backendText,
  evaluationSampling,
  inPrecisionOf,
  pricesOf,
  type Recipe,
  type RecipeCode,
  recipeJson,
  samplerOfModel,
  systemPromptOf,
  withAgentAdapters,
} from './recipe/recipe.js';
export { settingNamed } from './recipe/recipe-schema.js';
export { type ResolveOptions, resolveWith } from './recipe/resolve.js';
