/** The trackers of `--track`, one row each. */
import { RecipeError } from '@drmas/engine/errors';
import type { TrackerDeclaration } from '@drmas/engine/host';
import { mlflow } from './mlflow.js';
import { otel } from './otel/otel.js';
import { tensorboard } from './tensorboard.js';
import { trackio } from './trackio.js';

export const trackers: readonly TrackerDeclaration[] = [tensorboard, mlflow, trackio, otel];

export interface RequestedTracker {
  readonly declaration: TrackerDeclaration;
  readonly address: string;
}

/** The text of a tracker on the command line: `tensorboard`, `mlflow=URL`. */
const trackerForm = ({ name, address }: TrackerDeclaration) => (address === 'none' ? name : `${name}=URL`);

/** Reads trackers as a person types them. @throws RecipeError with the expected form */
export function requestedTrackers(words: readonly string[]): RequestedTracker[] {
  return words.map((word) => {
    const [name = '', ...rest] = word.split('=');
    const address = rest.join('=');
    const declaration = trackers.find((tracker) => tracker.name === name);
    const expected = trackers.map(trackerForm).join(', ');
    const shown = withoutSecrets(word);
    if (declaration === undefined)
      throw new RecipeError(`there is no tracker '${shown.replace(/=.*/s, '')}'; expected ${expected}`, 'track');
    const fits = declaration.address === 'none' ? rest.length === 0 : isWebAddress(address);
    if (!fits) throw new RecipeError(`expected ${trackerForm(declaration)}, got '${shown}'`, 'track');
    return { declaration, address };
  });
}

/** A path with an `@` is refused: it follows from a password with a `/`, and the host is then the user's name. */
function isWebAddress(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, pathname } = new URL(text);
  return /^https?:$/.test(protocol) && !pathname.includes('@');
}

/** The text after `--track` for people who repeat it: `...` stands for a name, a password or a key in the address. */
export const shownTracker = (word: string): string => withoutSecrets(word, '...@');

/**
 * The text after `--track` without names, passwords, tokens and other values of a query. It need not have the form of
 * an address.
 * @param user Stands for a name and a password
 */
const withoutSecrets = (word: string, user = '') =>
  word
    .replace(/(token|[?&][^=&]*)=[^&]*/gi, (value, name) => (value.includes('@') ? '@' : `${name}=...`))
    .replace(/^([\w-]+=)?([a-z][a-z\d+.-]*:\/\/)?.*@/is, `$1$2${user}`);
