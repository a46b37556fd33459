/** The runs of the page, side by side. */
export const variants = [
  {
    name: 'Dr. MAS',
    estimator: 'drmas',
    compares: "Each turn is compared with the same agent's turns on the same task.",
  },
  { name: 'GRPO', estimator: 'grpo', compares: 'Each episode is compared with all episodes on the same task.' },
] as const;
