/** The prices of one, all different: who has the right price has looked up the right fruit, or guessed. */
export const prices: Readonly<Record<string, number>> = {
  bean: 4,
  date: 3,
  fig: 5,
  kiwi: 7,
  lime: 2,
  nut: 9,
  pear: 6,
  plum: 8,
};
