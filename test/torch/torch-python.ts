/** Python with PyTorch for the processor, which the suite installs once. */
import { pythonEnvironment } from '../support/python-environment.js';

/** Whether there is one. `DRMAS_PYTHON` names it from now on. */
export async function torchPython(): Promise<boolean> {
  // A card needs the PyTorch of its machine.
  if (process.env.DRMAS_TEST_TORCH_DEVICE !== undefined) return true;
  const environment = await pythonEnvironment({
    name: 'torch',
    requirements: new URL('requirements.txt', import.meta.url),
    further: ['torch==2.13.0'],
    what: 'PyTorch (1 GB)',
  });
  if ('unavailable' in environment) {
    console.log(`SKIPPED: the engine on PyTorch, because ${environment.unavailable}`);
    return false;
  }
  process.env.DRMAS_PYTHON = environment.python;
  return true;
}
