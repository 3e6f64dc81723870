// Makes the page's template and the program of `--figures`: node build.mjs NODE_MODULES OUTPUT
import { createRequire } from 'node:module';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const [modules, output] = process.argv.slice(2).map(path => resolve(path));
const here = dirname(fileURLToPath(import.meta.url));
const esbuild = createRequire(join(modules, 'x.js'))('esbuild');

async function bundle(entry, platform) {
  const built = await esbuild.build({
    entryPoints: [join(here, 'src', entry)],
    bundle: true,
    minify: true,
    write: false,
    platform,
    format: platform === 'node' ? 'cjs' : 'iife',
    target: platform === 'node' ? 'node18' : 'es2020',
    nodePaths: [modules],
    charset: 'ascii',
    legalComments: 'eof',
    define: { 'process.env.NODE_ENV': '"production"' },
  });
  return built.outputFiles[0].text;
}

// What stands inside a script element may not look like its end, or like a comment.
const inScript = text => text.replaceAll('</script', '<\\/script').replaceAll('<!--', '<\\!--');
const page = readFileSync(join(here, 'page.html'), 'utf8');
const style = readFileSync(join(here, 'style.css'), 'utf8');
const script = await bundle('main.js', 'browser');
const kElement = '<script>{{SCRIPT}}</script>';
const styled = page.replace('{{STYLE}}', () => style);
mkdirSync(output, { recursive: true });
writeFileSync(
  join(output, 'page.html'),
  styled.replace(kElement, () => `<script>${inScript(script)}</script>`),
);
// For pages that stand beside each other, such as those of a sweep's points: the script once.
writeFileSync(join(output, 'part.html'), styled.replace(kElement, '<script src="page.js"></script>'));
writeFileSync(join(output, 'page.js'), script);
writeFileSync(join(output, 'figures.cjs'), await bundle('figures.js', 'node'));
