import { isBfloat16, widen } from '../bfloat16.js';
import type { HostKernels } from '../kernels.js';

export const embed: HostKernels['embed'] = ({ out, table, tokens, rows, width }) => {
  for (let row = 0; row < rows; row++) {
    const from = (tokens[row] as number) * width;
    const to = out.subarray(row * width, (row + 1) * width);
    if (isBfloat16(table)) widen(to, table.subarray(from, from + width));
    else to.set(table.subarray(from, from + width));
  }
};

export const embedBackward: HostKernels['embedBackward'] = ({ dTable, dOut, tokens, rows, width }) => {
  for (let row = 0; row < rows; row++) {
    const to = (tokens[row] as number) * width;
    for (let i = 0; i < width; i++) dTable[to + i] = (dTable[to + i] as number) + (dOut[row * width + i] as number);
  }
};

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
