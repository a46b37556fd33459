/** Backends: how to declare one, and what helps to write one. */

export type { BackendDefinition, BackendPlan } from './backends/backend-declaration.js';
export {
  type BackendDeclaration,
  type BackendPlugin,
  defineBackend,
  EXPORT_FORMATS,
  type ExportFormat,
  type ExportRequest,
  type Footprint,
  type MemoryPlan,
  type OpenOptions,
  type PlannedPolicy,
  type PreparedExport,
  type SizedModel,
} from './backends/backend-declaration.js';
export { forwardBackward, type LossGradient, lossGradient } from './backends/forward-backward.js';
export { ListPolicy } from './backends/list-policy.js';
