import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

const [light = '', dark = ''] = readFileSync(
  new URL('../../packages/dashboard/src/style/base.css', import.meta.url),
  'utf8',
).split('@media (prefers-color-scheme: dark)');
const coloursOf = (css: string): Readonly<Record<string, string>> =>
  Object.fromEntries([...css.matchAll(/--([\w-]+): (#[\da-f]{6});/g)].map(([, name, colour]) => [name, colour]));

/** The relative luminance of a colour (WCAG 2.2). */
function luminance(colour: string): number {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => {
    const part = Number.parseInt(colour.slice(at, at + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function contrast(one: string, other: string): number {
  const [darker = 0, lighter = 0] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (lighter + 0.05) / (darker + 0.05);
}

describe.each(Object.entries({ light, dark }))('the %s colours of words', (_, css) => {
  const colours = coloursOf(css);
  const words = Object.keys(colours).filter((name) => /^(c\d|ink|faint|link|mark|good-ink|bad-ink)$/.test(name));

  it('are those of at least 14 names', () => expect(words.length).toBeGreaterThanOrEqual(14));

  it.each(words)('--%s can be read on the page and on cards', (name) => {
    for (const ground of ['back', 'paper'])
      expect(contrast(colours[name] as string, colours[ground] as string), ground).toBeGreaterThanOrEqual(4.5);
  });
});
