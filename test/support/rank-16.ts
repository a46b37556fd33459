/** The adapter and the optimiser of the forecasts of a card's memory; research/bench/card/card.py measured the same. */
export const rank16 = {
  adapter: {
    base: 'base',
    kept: 'bfloat16',
    settings: { rank: 16, alpha: 16, targets: ['q', 'k', 'v', 'o', 'gate', 'up', 'down'] },
  },
  optimizer: { type: 'adamw', learningRate: 1e-5, beta1: 0.9, beta2: 0.99, epsilon: 1e-8, weightDecay: 0 },
  agents: 1,
} as const;
