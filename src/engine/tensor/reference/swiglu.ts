import type { HostKernels } from '../kernels.js';

const sigmoid = (x: number) => 1 / (1 + Math.exp(-x));

export const swiglu: HostKernels['swiglu'] = ({ out, gateUp, rows, feedForward }) => {
  for (let row = 0; row < rows; row++) {
    const at = row * feedForward;
    for (let i = 0; i < feedForward; i++) {
      const gate = gateUp[2 * at + i] as number;
      out[at + i] = gate * sigmoid(gate) * (gateUp[2 * at + feedForward + i] as number);
    }
  }
};

/** With s = sigmoid(gate): d silu / d gate = s (1 + gate (1 − s)). */
export const swigluBackward: HostKernels['swigluBackward'] = ({ dGateUp, dOut, gateUp, rows, feedForward }) => {
  for (let row = 0; row < rows; row++) {
    const at = row * feedForward;
    for (let i = 0; i < feedForward; i++) {
      const gate = gateUp[2 * at + i] as number;
      const up = gateUp[2 * at + feedForward + i] as number;
      const change = dOut[at + i] as number;
      const s = sigmoid(gate);
      dGateUp[2 * at + i] = change * up * s * (1 + gate * (1 - s));
      dGateUp[2 * at + feedForward + i] = change * gate * s;
    }
  }
};
