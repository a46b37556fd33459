/** The names of the files and folders of a run's directory. */
export const RECIPE = 'recipe.json';
export const EVENTS = 'events.jsonl';
/** One line a file of episodes, and at the end one of all events: sizes and SHA-256. */
export const DIGESTS = 'digests.jsonl';
export const EPISODES = 'episodes';
export const CHECKPOINTS = 'checkpoints';
/** References that cannot be made again: warm-started weights. */
export const REFERENCES = 'references';
