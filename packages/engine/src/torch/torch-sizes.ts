/** The most requests that are sampled at once, and the most rows of a micro-batch. */
export const SIZES = { processor: { slots: 64, rows: 1024 }, card: { slots: 256, rows: 8192 } } as const;
