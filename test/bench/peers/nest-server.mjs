// @rekog/mcp-nest as its README builds it, on NestJS with Express. Decorators are applied by hand: this file is not compiled.
import 'reflect-metadata';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Payload } from '@nestjs/microservices';
import { McpController, McpStrategy, StreamableHttpTransport, Tool } from '@rekog/mcp-nest';
import { countRows, findRows, groupRows, openRows } from './rows.mjs';
import { COUNT, FIND, GROUP } from './tool-texts.mjs';

const rows = await openRows();
const text = (value) => ({ content: [{ type: 'text', text: JSON.stringify(value) }] });

class RowsController {
  async find(args) {
    return text(await findRows(rows, args));
  }

  async count(args) {
    return text(await countRows(rows, args));
  }

  async group(args) {
    return text(await groupRows(rows, args));
  }
}
for (const [name, { description, inputSchema }] of [
  ['find', FIND],
  ['count', COUNT],
  ['group', GROUP],
]) {
  const method = Object.getOwnPropertyDescriptor(RowsController.prototype, name);
  Reflect.defineMetadata('design:paramtypes', [Object], RowsController.prototype, name);
  Payload()(RowsController.prototype, name, 0);
  Tool({ name, description, parameters: inputSchema })(RowsController.prototype, name, method);
}
McpController()(RowsController);

class AppModule {}
Module({ controllers: [RowsController] })(AppModule);

const mcp = new McpStrategy({ name: 'nest', version: '1.0.0', transports: [new StreamableHttpTransport()] });
const app = await NestFactory.create(AppModule, { logger: ['error', 'warn'] });
mcp.setHttpAdapter(app.getHttpAdapter());
app.connectMicroservice({ strategy: mcp });
await app.startAllMicroservices();
await app.listen(0, '127.0.0.1');
console.log(`listening on ${(await app.getUrl()).replace(/\/$/, '')}/mcp`);
