/** The same team with a table of choices for the expert, in which contexts share no weights. */
import { choiceTable } from 'drmas';
import { codes, contexts, contextsRecipe } from './contexts.js';

export default contextsRecipe(choiceTable({ choices: codes, features: contexts({}) }), 1);
