/** Numbers and times as the page writes them. */

import { duration, fixed, percent, significant } from '@drmas/engine/host';
import type { Headline } from '@drmas/engine/nouns';
import type { ScorePoint } from '../../../../src/runs/analysis.js';

/** A text of a model or a user as one may show it: control characters, other than line feeds, as dots. */
export { visible as clean } from '@drmas/engine/host';

/** The number that stands for a run at an evaluation: its score, or its mean reward. */
export const scoreText = ({ averageAtK, reward }: ScorePoint, headline: Headline = 'score') =>
  headline === 'reward' ? significant(reward ?? 0) : percent(averageAtK);

export const intervalText = ({ low, high }: { readonly low: number; readonly high: number }) =>
  `[${fixed(100 * low, 1)}, ${fixed(100 * high, 1)}]`;

/** Whether the intervals of two scores overlap, so that their difference may be chance. */
export const overlap = (one: ScorePoint, other: ScorePoint): boolean => one.low <= other.high && other.low <= one.high;

/** A difference of two fractions as `+19.3`. */
export const pointsText = (difference: number) =>
  `${difference >= 0 ? '+' : '−'}${fixed(Math.abs(100 * difference), 1)}`;

/** A time as `5 min ago`; the date if it is long ago. */
export function agoText(iso: string | null, now = Date.now()): string {
  if (iso === null) return '';
  const seconds = (now - Date.parse(iso)) / 1000;
  if (!Number.isFinite(seconds)) return iso;
  if (seconds < 60) return 'now';
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h ago`;
  const time = new Date(iso);
  const pad = (value: number) => String(value).padStart(2, '0');
  return `${time.getFullYear()}-${pad(time.getMonth() + 1)}-${pad(time.getDate())}`;
}

export const timeBetween = (from: string | null, to: string | null) =>
  from === null || to === null ? '' : duration((Date.parse(to) - Date.parse(from)) / 1000);
