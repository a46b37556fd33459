/**
 * In a worker of the page: runs the step, on two threads if the page is isolated, and posts the result to the server.
 */
const post = (result) => fetch('/result', { method: 'POST', body: JSON.stringify(result) });
try {
  const { trainingStep } = await import('./step.mjs');
  const { startBrowserThread } = await import('../../packages/engine/dist/tensor/wasm/browser-threads.js');
  const { createWasmKernels } = await import('../../packages/engine/dist/tensor/wasm/wasm.js');
  const response = await fetch('/native/drmas.wasm');
  const threads = globalThis.crossOriginIsolated ? 2 : 1;
  const kernels = createWasmKernels(new Uint8Array(await response.arrayBuffer()), {
    threads,
    start: startBrowserThread,
  });
  while (kernels.working() < threads) await new Promise((resolve) => setTimeout(resolve, 5));
  await post({ ...(await trainingStep(kernels)), threads });
} catch (error) {
  await post({ error: String(error?.stack ?? error) });
}
