// `npm run bench -- soak [minutes]`: memory of the service under a mixed load, read twelve times. It should stay flat.
import { soak } from './soak-load.mjs';

const { lowest, highest, asked, milliseconds, minutes } = await soak({
  minutes: Number(process.argv[2] ?? 10),
  told: ({ minute, asked: soFar, megabytes }) =>
    console.log(
      `${minute.toFixed(1)} min  ${String(soFar).padStart(8)} requests  ${megabytes.toFixed(0)} MB`,
    ),
});
console.log(
  `second half: ${lowest.toFixed(0)} – ${highest.toFixed(0)} MB; ${milliseconds.toFixed(2)} ms CPU a request, ` +
    `${asked} requests in ${minutes} min, Node ${process.version}`,
);
