/**
 * Saves a copy of a model or an adapter, and beside it its logits for a few random prompts as expected.json, for
 * transformers.py and peft.py. With --merge an adapter becomes a whole model.
 * usage: node --import tsx test/parity/save.ts FROM TO [--merge]
 */
import { loadPolicy } from '../../src/engine/embedded/load-policy.js';
import { writeExpected } from './expected.js';

const [from, to, flag] = process.argv.slice(2);
if (from === undefined || to === undefined) throw new Error('usage: save.ts FROM TO [--merge]');
const policy = await loadPolicy(from);
await policy.save(to, { merge: flag === '--merge' });
await writeExpected(to, policy.config, (ids) => policy.logits(ids));
await policy.dispose();
