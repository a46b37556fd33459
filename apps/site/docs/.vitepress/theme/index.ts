/** The default theme, with the demo of the home page. */
import { type Theme, useData, withBase } from 'vitepress';
import DefaultTheme from 'vitepress/theme';
import { defineComponent, h, ref } from 'vue';
import './demo.css';

/** A button that loads the page that trains. Before it is pressed, nothing of that page is fetched. */
const Demo = defineComponent(() => {
  const isOpen = ref(false);
  const open = () => {
    isOpen.value = true;
  };
  return () =>
    isOpen.value
      ? h('iframe', { class: 'demo', src: withBase('/demo/index.html#start'), title: 'Two teams train in this tab' })
      : h('button', { class: 'demo', type: 'button', onClick: open }, 'Train both teams in this tab');
});

/** The demo stands above the first page. */
const Layout = defineComponent(() => {
  const { page } = useData();
  return () =>
    h(DefaultTheme.Layout, null, {
      'doc-before': () => (page.value.relativePath === 'index.md' ? h(Demo) : undefined),
    });
});

export default { extends: DefaultTheme, Layout } satisfies Theme;
