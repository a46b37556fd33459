import { trainable } from 'drmas/agents';
import { recipeOf } from '../../walk.js';
import { programOf } from './program.js';

export default recipeOf(programOf((agent) => trainable(agent)));
