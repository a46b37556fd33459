import { describe, expect, it } from 'vitest';
import { junitReport } from './junit-report.js';

const event = { samples: 4, tasks: 20, seconds: 1.5 };

describe('a JUnit report', () => {
  it('fails below the score, and without one', () => {
    const failed = (averageAtK: number) => junitReport('run', { ...event, averageAtK }, 0.9).includes('<failure');
    expect([0.9, 1, 0.8999, Number.NaN].map(failed)).toEqual([false, false, true, true]);
  });

  it('passes a mean that is below the score by rounding alone', () => {
    const mean = 0.3 - 1e-16;
    expect(mean).toBeLessThan(0.3);
    expect(junitReport('run', { ...event, averageAtK: mean }, 0.3)).not.toContain('<failure');
  });

  it('tells a score from the limit that it misses', () => {
    const xml = junitReport('run', { ...event, averageAtK: 0.89997 }, 0.9);
    expect(xml).toContain('message="avg@4 is 89.997 % on 20 held-out tasks, below 90 %"');
    expect(junitReport('run', { ...event, averageAtK: 1 }, 0.9995)).toContain('name="avg@4 is at least 99.95 %"');
  });

  it('escapes the name of the run', () => {
    const xml = junitReport('a<b>&"c"\u0007', { ...event, averageAtK: 1 }, 0.9);
    expect(xml).toContain('classname="a&lt;b&gt;&amp;&quot;c&quot; "');
  });
});
