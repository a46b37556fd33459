import { describe, expect, it } from 'vitest';
import { groupsOf, placeInSite, sitePages } from './site-pages.js';

describe('the pages of the site', () => {
  it('have one place each', () => {
    const paths = sitePages().map(({ path }) => path);
    expect(new Set(paths).size).toBe(paths.length);
    expect(paths).toEqual(expect.arrayContaining(['index.md', 'pages.md', 'reference/api/drmas-tasks.md']));
    expect(placeInSite('docs/decisions/README.md')).toBe('decisions/index.md');
    expect(placeInSite('src/index.ts')).toBeUndefined();
  });

  it('link only pages and pictures of the site, unless the address of the repository is known', () => {
    const targets = (files?: string) =>
      sitePages(files).flatMap(({ text }) => [...text.matchAll(/\]\(([^)#\s]+)/g)].map(([, target = '']) => target));
    const foreign = (target: string) => !/^https?:/.test(target) && !/\.(md|svg|webp|png)$/.test(target);
    expect(targets().filter(foreign)).toEqual([]);
    const files = 'https://example.org/files';
    expect(targets(files).filter(foreign)).toEqual([]);
    expect(targets(files).filter((target) => target.startsWith(files)).length).toBeGreaterThan(10);
  });

  it('show no marks of generated parts', () => {
    for (const { path, text } of sitePages()) expect(text, path).not.toContain('<!-- ');
  });
});

describe('the menu', () => {
  it('has the groups and links of the index', () => {
    const index =
      '# Documents\n\n**Start**\n\n- [First](getting-started.md): words\n\n**More**\n\n- [all\n  of it](decisions/README.md), [x](../src/a.ts)\n';
    expect(groupsOf(index)).toEqual([
      { text: 'Start', items: [{ text: 'First', link: '/getting-started' }] },
      { text: 'More', items: [{ text: 'All of it', link: '/decisions/' }] },
    ]);
  });
});
