// An application with Parley in it, in a process of its own. Written without decorators: Node runs it as it is.
import 'reflect-metadata';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ParleyModule, Tool } from '@parley/server';

class DeskTools {
  /** Runs until it is told to end by its client, or by a message of the test. */
  async waits(_, call) {
    call.progress({ progress: 1, message: 'begun' });
    process.send({ begun: true });
    return new Promise((resolve) => {
      process.once('message', () => resolve({ aborted: false }));
      call.signal.addEventListener('abort', () => {
        process.send({ aborted: String(call.signal.reason) });
        resolve({ aborted: true });
      });
    });
  }
}
const described = (target, name, decorator) =>
  decorator(target.prototype, name, Object.getOwnPropertyDescriptor(target.prototype, name));
described(DeskTools, 'waits', Tool({ name: 'waits', description: 'Until it is told to end.' }));

class AppModule {}
Module({
  imports: [
    ParleyModule.forRoot({
      ...JSON.parse(process.argv[2]),
      agents: { desk: { permissions: 'readonly', rateLimit: 8, rateWindow: 600 } },
      auth: [{ apiKey: 'key-of-the-desk', agent: 'desk' }],
    }),
    ParleyModule.forFeature([DeskTools]),
  ],
})(AppModule);

const app = await NestFactory.create(AppModule, { logger: ['error', 'warn'] });
app.enableShutdownHooks();
await app.listen(0, '127.0.0.1');
process.send({ url: `${await app.getUrl()}/mcp` });
