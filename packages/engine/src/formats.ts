/** Formats of models on disk, and downloads from a hub. */
export { datasetFiles, parseDatasetId } from './hub/dataset-files.js';
export { type Commits, withLocalModels } from './hub/local-models.js';
export { modelDirectory } from './hub/model-directory.js';
export { type ModelOnDisk, modelsOnDisk } from './hub/models-on-disk.js';
export { isGguf } from './model/formats/gguf/gguf-checkpoint.js';
export { readConfig } from './model/formats/model-config.js';
export { readAdapterDescription, storedModules, writeAdapterConfig } from './model/formats/peft.js';
export { describeModel, holdsModel } from './model/formats/stored-model.js';
export { formatJson, readJson, readTemplate, readTokenizer } from './model/formats/tokenizer-files.js';
export { parseJson, parseWith, readOrRefuse } from './model/formats/validated-json.js';
