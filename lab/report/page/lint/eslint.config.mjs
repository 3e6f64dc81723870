// For `./dev lint`, which says where the packages are: CM384_LINT_PACKAGES.
import { createRequire } from 'node:module';
import { join } from 'node:path';

const packages = createRequire(join(process.env.CM384_LINT_PACKAGES, 'x.js'));
const globals = packages('globals');

export default [
  packages('@eslint/js').configs.recommended,
  {
    languageOptions: { globals: { ...globals.browser, ...globals.node } },
    linterOptions: { reportUnusedDisableDirectives: 'error' },
    rules: { 'no-unused-vars': ['error', { ignoreRestSiblings: true }], eqeqeq: 'error', 'prefer-const': 'error', 'no-var': 'error' },
  },
];
