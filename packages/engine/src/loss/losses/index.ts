import { cispo } from './cispo.js';
import { crossEntropy } from './cross-entropy.js';
import { gspo } from './gspo.js';
import { ppoClip } from './ppo-clip.js';
import { sPpo, stPpo, turnPpo } from './turn-ppo.js';

/** Every policy loss of the engine, in the order of messages and tables. A new one is a file and a row here. */
export const losses = [ppoClip, turnPpo, sPpo, stPpo, cispo, gspo, crossEntropy] as const;
