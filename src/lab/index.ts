/** Door of `lab`: methods for which no measurement has shown a gain yet: policies as tables of choices. */
import { choiceTableKind } from './table/choice-table-kind.js';

/** The kinds of models that are no decoders, one row each. */
export const modelKinds = [choiceTableKind] as const;
