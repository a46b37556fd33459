/** What the recipe `repair` imports from 'drmas', without the rest of the package. */
export { assistant, user } from '../../../src/core/message.js';
export { tinyDecoder } from '../../../src/model/model-spec.js';
export { defineRecipe } from '../../../src/recipe/define.js';
export { toolbox } from '../../../src/tasks/generated/toolbox.js';
export { toolboxCommand, toolboxSymbols } from '../../../src/tasks/generated/toolbox-commands.js';
export { toolboxSandbox } from '../../../src/tasks/generated/toolbox-sandbox.js';
export { agent } from '../../../src/teams/agent.js';
export { defineTeam } from '../../../src/teams/team.js';
