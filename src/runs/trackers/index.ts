/** The trackers of `--track`, one row each. */
import { RecipeError } from '../../base/errors.js';
import type { TrackerDeclaration } from '../../base/host.js';
import { mlflow } from './mlflow.js';
import { otel } from './otel/otel.js';
import { tensorboard } from './tensorboard.js';
import { trackio } from './trackio.js';

export const trackers: readonly TrackerDeclaration[] = [tensorboard, mlflow, trackio, otel];

/** A requested tracker. */
export interface RequestedTracker {
  readonly declaration: TrackerDeclaration;
  /** Empty if the tracker has no address. */
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
    if (declaration === undefined)
      throw new RecipeError(`there is no tracker '${name}'; expected ${expected}`, 'track');
    const fits = declaration.address === 'none' ? rest.length === 0 : isWebAddress(address);
    if (!fits) throw new RecipeError(`expected ${trackerForm(declaration)}, got '${withoutSecrets(word)}'`, 'track');
    return { declaration, address };
  });
}

const isWebAddress = (text: string) => URL.canParse(text) && /^https?:$/.test(new URL(text).protocol);

/** A text without the name and the password that an address may contain. */
const withoutSecrets = (text: string) => text.replace(/\/\/[^/@]*@/, '//').replace(/token=[^&]*/g, 'token=...');
