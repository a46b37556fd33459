import { differ } from '@drmas/engine/math';
import type { Groups } from '../groups.js';

export interface Column {
  readonly values: Float64Array; // [members]
  readonly group: Int32Array; // [members]
  readonly peers: Groups;
}

/**
 * The first thing that differs within a group: the outcomes; else the rewards of single agents and turns; else only the
 * penalties; else nothing.
 */
export type GroupKind = 'mixed' | 'ownRewardsOnly' | 'penaltiesOnly' | 'nothing';

/** The success of a member that counts as right. */
const SUCCESS = 0.5;

export interface GroupOutcome {
  readonly kind: GroupKind;
  /** All members succeed. If only outcomes are known: the outcomes add up to more than 0. */
  readonly right: boolean;
}

/** The number of groups of each kind. `allRight` and `allWrong` divide the groups whose outcomes are equal. */
export interface KindCounts {
  readonly allRight: number;
  readonly allWrong: number;
  readonly mixed: number;
  readonly ownRewardsOnly: number;
  readonly penaltiesOnly: number;
  readonly nothing: number;
}

/**
 * Finds what differs in each of `count` groups. Numbers that differ by rounding only count as equal.
 * @param columns.outcome The reward of the episodes, which decides what differs
 * @param columns.success From 0 to 1; a member succeeds from 0.5 on. Absent in logs of programs that record no success
 * @param columns.earned The outcome plus the rewards of single agents and turns, before penalties. Default: the outcome
 * @param columns.reward `earned` minus the penalties
 */
export function groupOutcomes(
  count: number,
  {
    outcome,
    success,
    earned = outcome,
    reward,
  }: { readonly outcome: Column; readonly success?: Column; readonly earned?: Column; readonly reward: Column },
): GroupOutcome[] {
  const outcomeDiffers = differing(outcome, count);
  const earnedDiffers = differing(earned, count);
  const rewardDiffers = differing(reward, count);
  const right = success === undefined ? positive(outcome, count) : succeeding(success, count);
  const kindOf = (group: number): GroupKind => {
    if (outcomeDiffers[group] === 1) return 'mixed';
    if (earnedDiffers[group] === 1) return 'ownRewardsOnly';
    return rewardDiffers[group] === 1 ? 'penaltiesOnly' : 'nothing';
  };
  return Array.from({ length: count }, (_, group) => ({ kind: kindOf(group), right: right[group] === true }));
}

/** Whether the values of each group add up to more than 0. */
function positive({ values, group }: Column, count: number): boolean[] {
  const total = new Float64Array(count);
  for (const [i, value] of values.entries()) {
    const g = group[i] as number;
    total[g] = (total[g] as number) + value;
  }
  return Array.from(total, (sum) => sum > 0);
}

/** Whether each group has members, and all of them succeed. */
function succeeding({ values, group }: Column, count: number): boolean[] {
  const least = new Float64Array(count).fill(Number.POSITIVE_INFINITY);
  for (const [i, value] of values.entries()) {
    const g = group[i] as number;
    least[g] = Math.min(least[g] as number, value);
  }
  return Array.from(least, (value) => value >= SUCCESS && value < Number.POSITIVE_INFINITY);
}

export function countKinds(outcomes: readonly GroupOutcome[]): KindCounts {
  const counts = { allRight: 0, allWrong: 0, mixed: 0, ownRewardsOnly: 0, penaltiesOnly: 0, nothing: 0 };
  for (const { kind, right } of outcomes) {
    counts[kind]++;
    if (kind !== 'mixed') counts[right ? 'allRight' : 'allWrong']++;
  }
  return counts;
}

/**
 * Makes a column from one list of members a group. Members of a group are peers if `peersOf` returns the same name.
 */
export function columnOf<Member>(
  groups: readonly (readonly Member[])[],
  numberOf: (member: Member) => number,
  peersOf: (member: Member) => string = () => '',
): Column {
  const values = Float64Array.from(groups.flatMap((members) => members.map(numberOf)));
  const group = Int32Array.from(groups.flatMap((members, g) => members.map(() => g)));
  const peers = new Int32Array(values.length);
  let [member, count] = [0, 0];
  for (const members of groups) {
    const ids = new Map<string, number>();
    for (const one of members) {
      const name = peersOf(one);
      const id = ids.get(name) ?? count++;
      ids.set(name, id);
      peers[member++] = id;
    }
  }
  return { values, group, peers: { of: peers, count } };
}

/** 1 for each group in which two peers have different values. Differences by rounding do not count. */
function differing({ values, group, peers }: Column, count: number): Uint8Array {
  const first = new Float64Array(peers.count).fill(Number.NaN);
  const differs = new Uint8Array(count);
  for (let i = 0; i < values.length; i++) {
    const p = peers.of[i] as number;
    const value = values[i] as number;
    const other = first[p] as number;
    if (Number.isNaN(other)) first[p] = value;
    else if (differ(value, other)) differs[group[i] as number] = 1;
  }
  return differs;
}
