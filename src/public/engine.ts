/** The names of `drmas/engine`: those of the package `@drmas/engine`. */
export * from '@drmas/engine';
