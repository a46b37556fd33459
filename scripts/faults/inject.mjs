/**
 * Loaded before the program (`node --import`): the n-th call that changes a file below DRMAS_FAULT_BELOW kills the
 * process, or fails as on a full disk after half of its bytes. Without DRMAS_FAULT_AT the calls are counted.
 */
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';

const {
  DRMAS_FAULT_BELOW: below = '',
  DRMAS_FAULT_AT: at,
  DRMAS_FAULT_KIND: kind,
  DRMAS_FAULT_COUNT: count,
} = process.env;
const paths = new Map();
let calls = 0;

/** Whether this call is the one that fails; a process that is to be killed here never learns it. */
function failsAt(path) {
  if (!String(path).includes(below)) return false;
  calls++;
  if (calls !== Number(at)) return false;
  if (kind === 'kill') process.kill(process.pid, 'SIGKILL');
  return kind !== 'kill';
}
const full = () => Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC', errno: -28 });

const real = { ...fs };
const promises = { ...fs.promises };
if (count !== undefined) process.on('exit', () => calls > 0 && real.writeFileSync(count, String(calls)));

fs.openSync = (path, ...rest) => {
  const descriptor = real.openSync(path, ...rest);
  paths.set(descriptor, path);
  return descriptor;
};
fs.writeSync = (descriptor, bytes, offset, length, position) => {
  if (!failsAt(paths.get(descriptor))) return real.writeSync(descriptor, bytes, offset, length, position);
  if (typeof bytes !== 'string') real.writeSync(descriptor, bytes, offset, length >> 1, position);
  throw full();
};
fs.fsyncSync = (descriptor) => {
  if (failsAt(paths.get(descriptor))) throw full();
  real.fsyncSync(descriptor);
};
fs.promises.open = async (path, flags, ...rest) => {
  const file = await promises.open(path, flags, ...rest);
  const [writeFile, sync] = [file.writeFile.bind(file), file.sync.bind(file)];
  file.writeFile = async (content) => {
    if (!failsAt(path)) return writeFile(content);
    await writeFile(Buffer.from(content).subarray(0, content.length >> 1));
    throw full();
  };
  file.sync = async () => {
    if (failsAt(path)) throw full();
    return sync();
  };
  return file;
};
for (const name of ['rename', 'mkdir', 'rm', 'truncate'])
  fs.promises[name] = async (path, ...rest) => {
    if (failsAt(path)) throw full();
    return promises[name](path, ...rest);
  };
syncBuiltinESMExports();
