throw new Error('the reason it gives');
