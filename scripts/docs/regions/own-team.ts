import { type Region, readPage } from '../pages.js';

/** The example of a user's file, without its first comment. */
export const ownTeam: Region = {
  name: 'own-team',
  render: () => `\`\`\`ts\n${readPage('examples/own-team.ts').replace(/^\/\*\*[\s\S]*?\*\/\n/, '')}\`\`\``,
};
