/** In a worker of the page: the step, and its result posted to the server. */
const post = (result) => fetch('/result', { method: 'POST', body: JSON.stringify(result) });
try {
  const { trainingStep } = await import('./step.mjs');
  const response = await fetch('/native/drmas.wasm');
  const losses = trainingStep(new Uint8Array(await response.arrayBuffer()));
  await post({ ...losses, isolated: globalThis.crossOriginIsolated });
} catch (error) {
  await post({ error: String(error?.stack ?? error) });
}
