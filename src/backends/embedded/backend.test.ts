import { backendContract } from '../../../test/contracts/backend.js';
import { temporaryRoot } from '../../../test/support/tiny-run.js';
import { nodeFiles } from '../../runs/node-files.js';
import { EmbeddedBackend } from './backend.js';

backendContract('the embedded engine', () => EmbeddedBackend.start({ threads: 2, files: nodeFiles }), temporaryRoot());
