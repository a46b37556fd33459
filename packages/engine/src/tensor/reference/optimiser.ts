import type { HostKernels } from '../kernels.js';

export const sumOfSquares: HostKernels['sumOfSquares'] = ({ x, length }) => {
  let sum = 0;
  for (let i = 0; i < length; i++) sum += (x[i] as number) * (x[i] as number);
  return sum;
};

export const add: HostKernels['add'] = ({ out, x, length }) => {
  for (let i = 0; i < length; i++) out[i] = (out[i] as number) + (x[i] as number);
};

export const adamw: HostKernels['adamw'] = ({ weights, gradient, firstMoment, secondMoment, length, settings }) => {
  const { learningRate, beta1, beta2, epsilon, weightDecay, step, gradientScale } = settings;
  const firstCorrection = 1 - beta1 ** step;
  const secondCorrection = 1 - beta2 ** step;
  const keep = 1 - learningRate * weightDecay;
  for (let i = 0; i < length; i++) {
    const g = (gradient[i] as number) * gradientScale;
    const m = beta1 * (firstMoment[i] as number) + (1 - beta1) * g;
    const v = beta2 * (secondMoment[i] as number) + (1 - beta2) * g * g;
    firstMoment[i] = m;
    secondMoment[i] = v;
    const change = m / firstCorrection / (Math.sqrt(v / secondCorrection) + epsilon);
    weights[i] = (weights[i] as number) * keep - learningRate * change;
  }
};
