import { describe, expect, it } from 'vitest';
import { junitReport } from './junit-report.js';

const event = { samples: 4, tasks: 20, seconds: 1.5 };

describe('a JUnit report', () => {
  it('fails below the score, and without one', () => {
    const failed = (averageAtK: number) => junitReport('run', { ...event, averageAtK }, 0.9).includes('<failure');
    expect([0.9, 1, 0.8999, Number.NaN].map(failed)).toEqual([false, false, true, true]);
  });

  it('escapes the name of the run', () => {
    const xml = junitReport('a<b>&"c"\u0007', { ...event, averageAtK: 1 }, 0.9);
    expect(xml).toContain('classname="a&lt;b&gt;&amp;&quot;c&quot; "');
  });
});
