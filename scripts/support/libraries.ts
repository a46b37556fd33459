/** The libraries that npm publishes beside drmas: the folder of each, in the order in which one needs another. */
export const LIBRARIES = {
  '@drmas/engine': 'packages/engine',
  '@drmas/webgpu': 'packages/webgpu',
  '@drmas/tinker': 'packages/tinker',
} as const;

/** The name of a library. */
export type Library = keyof typeof LIBRARIES;
