import type { Episode } from '@drmas/engine/nouns';
import { describe, expect, it } from 'vitest';
import { agentPartMeans, namedMeans } from './recorder.js';

const scored = (score: Partial<Episode['score']>, failure?: Episode['failure']) =>
  ({ score: { team: 0, agents: {}, parts: {}, ...score }, failure }) as Episode;

describe('the means of named parts', () => {
  it('count a missing part as 0, also if each object has its name, and give each group the same weight', () => {
    const [one, other] = [scored({ parts: { constructor: 1 } }), scored({ parts: { built: 0.5 } })];
    expect(namedMeans([[one, other]]).parts).toEqual({ built: 0.25, constructor: 0.5 });
    expect(namedMeans([[one], [other, scored({})]]).parts).toEqual({ built: 0.125, constructor: 0.5 });
    expect(namedMeans([[scored({})], []])).toEqual({});
  });

  it('of metrics are over the episodes that have the metric', () => {
    const metrics = [{ toString: 2 }, { length: 1 }, { length: 3 }].map((each) => scored({ metrics: each as never }));
    expect(namedMeans([metrics]).metrics).toEqual({ length: 2, toString: 2 });
  });

  it("of an agent's reward sum to its mean reward, with the failed episodes, in which it earns 0", () => {
    const own = scored({ agents: { critic: 1 }, agentParts: { critic: { found: 0.75, brief: 0.25 } } });
    const failed = scored({}, { reason: 'too-many-turns', message: '' });
    const ofTeam = scored({ team: 1 });
    expect(agentPartMeans([[own, failed, ofTeam]], 'critic')).toEqual({ parts: { brief: 0.125, found: 0.375 } });
    expect(agentPartMeans([[failed, ofTeam]], 'critic')).toEqual({});
  });
});
