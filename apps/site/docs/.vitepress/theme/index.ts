/** The default theme, with a home page of our own. */
import { type Theme, useData } from 'vitepress';
import DefaultTheme from 'vitepress/theme';
import { defineComponent, h } from 'vue';
import { Home } from './home.js';
import './site.css';

const Layout = defineComponent(() => {
  const { page } = useData();
  return () =>
    h(DefaultTheme.Layout, null, {
      'page-top': () => (page.value.relativePath === 'index.md' ? h(Home) : undefined),
    });
});

export default { extends: DefaultTheme, Layout } satisfies Theme;
