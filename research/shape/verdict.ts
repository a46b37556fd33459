/** Which smaller team is as good: the rule that drops, the test that shows, and the choice of the cheapest. */
import { mean } from '@drmas/engine/math';
import { holm, oneSidedP } from '../harness/p-values.js';

/** The error rate of the claim that a team is as good, over all variants together, and of dropping a good variant. */
export const ALPHA = 0.05;
/** Prices are equal if they differ by at most this share of the whole team's. */
const SAME_PRICE = 0.02;
/** The pairs before the first look at the differences. */
const FIRST_LOOK = 2;

/** The scores of a variant and of the whole team. */
export interface Compared {
  readonly name: string;
  /** [pairs], the variant's score minus the whole team's, in the order of the seeds. */
  readonly differences: readonly number[];
  /** The price of an episode, in any unit. */
  readonly price: number;
  /** Trained parameters. */
  readonly trained: number;
}

/** The rule of a study. */
export interface Rule {
  /** The accepted loss of score, 0..1. */
  readonly margin: number;
  /** The planned number of pairs. */
  readonly pairs: number;
  /** Episodes in the evaluation of a run. */
  readonly episodes: number;
}

/**
 * The least standard deviation of a difference. Few episodes give equal scores by chance, and scores near 1 are skewed,
 * so a small spread of a few pairs says too little. A score that loses the margin from 1 has at least the binomial
 * deviation, and no score is known better than to one episode.
 */
export const leastSpread = ({ margin, episodes }: Pick<Rule, 'margin' | 'episodes'>): number =>
  Math.max(1 / episodes, Math.sqrt((margin * (1 - margin)) / episodes));

export interface Verdict {
  readonly name: string;
  readonly pairs: number;
  /** The mean of the differences. */
  readonly difference: number;
  /** `shown`: the loss is below the margin. `dropped`: the loss is above it, after fewer pairs. `open`: neither. */
  readonly verdict: 'shown' | 'dropped' | 'open';
  /** Holm's adjusted p value of the test that the loss is below the margin. */
  readonly p: number;
}

/**
 * The number of pairs after which a variant is dropped: the first after which its loss is shown to be above the margin.
 * There is a look after each pair from the second on, apart from the last, and each look has the same share of `ALPHA`
 * (Bonferroni). So a variant whose loss is at most the margin is dropped in at most `ALPHA` of studies. A dropped
 * variant is not chosen, so the rule cannot raise the error rate of the choice.
 */
export function droppedAfter(differences: readonly number[], rule: Rule): number | undefined {
  const { margin, pairs } = rule;
  const looks = pairs - FIRST_LOOK;
  for (let n = FIRST_LOOK; n < Math.min(pairs, differences.length + 1); n++) {
    const losses = differences.slice(0, n).map((difference) => -difference);
    if (oneSidedP(losses, margin, leastSpread(rule)) <= ALPHA / looks) return n;
  }
  return undefined;
}

/**
 * A non-inferiority test of each variant: Student's t over pairs against a loss of `margin`, with Holm's adjustment for
 * all variants. The chosen one is the cheapest whose loss is shown to be below the margin, if it is cheaper than the
 * whole team: by its price, or at the same price by its trained parameters.
 */
export function judge(
  variants: readonly Compared[],
  whole: Pick<Compared, 'price' | 'trained'>,
  rule: Rule,
): { readonly verdicts: readonly Verdict[]; readonly chosen: string | undefined } {
  const judged = variants.map(({ differences }) => {
    const dropped = droppedAfter(differences, rule);
    const used = dropped === undefined ? differences : differences.slice(0, dropped);
    const isWhole = dropped === undefined && used.length === rule.pairs;
    return { dropped, used, p: isWhole ? oneSidedP(used, -rule.margin, leastSpread(rule)) : 1 };
  });
  const ps = holm(judged.map(({ p }) => p));
  const verdicts = variants.map(({ name }, i): Verdict => {
    const { dropped, used } = judged[i] as (typeof judged)[number];
    const p = ps[i] as number;
    const verdict = dropped !== undefined ? 'dropped' : p <= ALPHA ? 'shown' : 'open';
    return { name, pairs: used.length, difference: mean(used), verdict, p };
  });
  const priceOf = ({ price }: Pick<Compared, 'price'>) =>
    Math.abs(price - whole.price) <= SAME_PRICE * whole.price ? whole.price : price;
  const isCheaper = (a: Pick<Compared, 'price' | 'trained'>, b: Pick<Compared, 'price' | 'trained'>) =>
    priceOf(a) === priceOf(b) ? a.trained < b.trained : priceOf(a) < priceOf(b);
  const [chosen] = variants
    .filter((variant, i) => verdicts[i]?.verdict === 'shown' && isCheaper(variant, whole))
    .sort((a, b) => (isCheaper(a, b) ? -1 : isCheaper(b, a) ? 1 : 0));
  return { verdicts, chosen: chosen?.name };
}
