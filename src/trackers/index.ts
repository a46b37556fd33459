/** The trackers that `--track` knows, one row each. */
import { RecipeError } from '../core/errors.js';
import { mlflow } from './mlflow.js';
import { otel } from './otel/otel.js';
import { tensorboard } from './tensorboard/tensorboard.js';
import type { TrackerDeclaration } from './tracker-declaration.js';
import { trackio } from './trackio.js';

const trackers: readonly TrackerDeclaration[] = [tensorboard, mlflow, trackio, otel];

/** A tracker that was asked for. */
export interface RequestedTracker {
  readonly declaration: TrackerDeclaration;
  /** Empty where it has none. */
  readonly address: string;
}

/** How a tracker is typed: `tensorboard`, `mlflow=URL`. */
const trackerForm = ({ name, address }: TrackerDeclaration) => (address === 'none' ? name : `${name}=URL`);

/** Reads trackers as they are typed. @throws RecipeError naming what was expected */
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

/** A text without the name and the password that may stand in an address. */
const withoutSecrets = (text: string) => text.replace(/\/\/[^/@]*@/, '//').replace(/token=[^&]*/g, 'token=...');
