import fc from 'fast-check';

// One seed gives one run of the properties too, so a change that breaks none of them is not refused by chance.
// `DRMAS_TEST_SEED=7 npm test` tries others.
fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: Number(process.env.DRMAS_TEST_SEED ?? 1) });
