import { Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { describe, expect, it } from 'vitest';
import { InstanceProvidersModule } from './routes.module.js';

@Injectable()
class Plain {}

@Injectable()
class WithHook {
  onModuleDestroy(): void {}
}

@Module({ providers: [Plain, WithHook] })
class InstanceModule {}

describe('the providers of an instance in the application of its routes', () => {
  it('are the ones of the instance, and none has a hook that would run twice', async () => {
    const instance = await NestFactory.createApplicationContext(InstanceModule, { logger: ['error'] });
    const routes = await NestFactory.createApplicationContext(
      InstanceProvidersModule.register(instance, [Plain]),
      {
        logger: ['error'],
      },
    );
    expect(routes.get(Plain)).toBe(instance.get(Plain));
    expect(() => InstanceProvidersModule.register(instance, [Plain, WithHook])).toThrow(
      'WithHook has the lifecycle hook onModuleDestroy',
    );
  });
});
