/** The same team with a table of choices for each agent, in which contexts share no weights. */
import { choiceTable } from 'drmas';
import { codes, contextsRecipe, prompts } from './contexts.js';

const table = choiceTable({ choices: codes, features: prompts });

export default contextsRecipe({ clerk: table, expert: table, maxTokens: 1, space: '' });
