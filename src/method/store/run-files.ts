/** The names of the files and folders of a run's directory. */
export const RECIPE = 'recipe.json';
export const EVENTS = 'events.jsonl';
/** Sizes and SHA-256: one line for each episode file, and a last line for all events. */
export const DIGESTS = 'digests.jsonl';
export const EPISODES = 'episodes';
export const CHECKPOINTS = 'checkpoints';
/** References that cannot be computed again: warm-started weights. */
export const REFERENCES = 'references';
